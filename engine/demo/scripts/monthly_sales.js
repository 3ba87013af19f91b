// Totals of the month before the slot. The slot, not the clock, says which month: a late run counts the right one.
export default async function ({ db, kv, action }) {
  const to = (action.slot ?? now).toZonedDateTimeISO().with({ day: 1 }).startOfDay();
  const from = to.subtract({ months: 1 });
  const paid = { state: "paid", placed: { gte: from, lt: to } };
  const orders = await db.orders.count(paid);
  const cents = await db.orders.sum("total_cents", paid);
  const month = from.toPlainDate().toString().slice(0, 7);
  await kv.set(`sales/${month}`, { orders, cents });
  return { month, orders, total: (cents / 100).toFixed(2) };
}
