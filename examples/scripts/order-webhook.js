// Tells other systems of paid orders: an event for each, signed and repeated by Lodger until it has arrived.
// The mark and the event are one transaction.
export default script(async ({ db, events, now }) => {
  const paid = await db.orders.find({ state: "paid", told: null }, { limit: 100 });
  for (const order of paid) {
    await events.emit("order.paid", { id: order.id, total: order.total });
    await db.orders.update(order.id, { told: now });
  }
  return paid.map((order) => order.id);
});
