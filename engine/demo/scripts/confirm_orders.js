// Confirms new orders, oldest first, five at a time.
export default async function ({ db }) {
  const waiting = await db.orders.find({ state: "new" }, { order: "placed", limit: 5 });
  for (const order of waiting) {
    await db.orders.update(order.id, { state: "paid" });
  }
  return { confirmed: waiting.length, left: await db.orders.count({ state: "new" }) };
}
