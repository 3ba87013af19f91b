// A mistake that everybody makes once: strings have padStart and padEnd, and no padLeft.
export default async function ({ db }) {
  const [newest] = await db.orders.find({}, { order: "-placed", limit: 1 });
  console.log(`the newest order is ${newest.id}`);
  const total = (newest.total_cents / 100).toFixed(2);
  return { report: total.padLeft(12) };
}
