// The figure of the last seven days; below the threshold the manager hears of it.
export default async function ({ db, mail, now, action }) {
  const { threshold, manager } = action.input;
  const { count, sum } = await db.orders.aggregate(
    { state: "paid", placed: { gte: now.minus({ days: 7 }) } },
    { sum: "total_cents" },
  );
  const total = sum.total_cents / 100;
  if (total < threshold) {
    await mail.send({
      to: manager,
      subject: `Sales of the week: ${total.toFixed(2)}, below ${threshold}`,
      text: `${count} orders in seven days. The threshold is ${threshold}.`,
    });
  }
  return { orders: count, total: total.toFixed(2), mailed: total < threshold };
}
