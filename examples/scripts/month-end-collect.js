// First step of the month's end: sums the open invoices of each customer. Its result is the input of the next step.
// Each step is committed by itself, and a step that fails is repeated without those before it.
export default script(async ({ db, now }) => {
  const month = now.toZonedDateTimeISO().toPlainDate().with({ day: 1 });
  const groups = await db.invoices.aggregate({ state: "open", due: { lt: month } }, {
    groupBy: "customer", sum: "amount",
  });
  return groups.map(({ group, sum }) => ({ customer: group.customer, amount: sum.amount }));
});
