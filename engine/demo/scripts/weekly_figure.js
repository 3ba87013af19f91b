// The figure of the last seven days; below the threshold the manager hears of it.
export default async function ({ db, mail, now, action }) {
  const { threshold, manager } = action.input;
  const week = { state: "paid", placed: { gte: now.subtract({ days: 7 }) } };
  const orders = await db.orders.count(week);
  const total = (await db.orders.sum("total_cents", week)) / 100;
  if (total < threshold) {
    await mail.send({
      to: manager,
      subject: `Sales of the week: ${total.toFixed(2)}, below ${threshold}`,
      text: `${orders} orders in seven days. The threshold is ${threshold}.`,
    });
  }
  return { orders, total: total.toFixed(2), mailed: total < threshold };
}
