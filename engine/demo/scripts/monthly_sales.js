// Totals of the month before the slot. The slot, not the clock, says which month: a late run counts the right one.
export default async function ({ db, kv, action }) {
  const slot = new Date(action.slot);
  const from = new Date(Date.UTC(slot.getUTCFullYear(), slot.getUTCMonth() - 1, 1));
  const to = new Date(Date.UTC(slot.getUTCFullYear(), slot.getUTCMonth(), 1));
  const paid = { state: "paid", placed: { gte: from, lt: to } };
  const { count, sum } = await db.orders.aggregate(paid, { sum: "total_cents" });
  const month = from.toISOString().slice(0, 7);
  await kv.set(`sales/${month}`, { orders: count, cents: sum.total_cents });
  return { month, orders: count, total: (sum.total_cents / 100).toFixed(2) };
}
