// Keeps the number of open orders of each customer, from the changes since the last successful run.
// A run that fails leaves the position where it was, so that no change is lost.
export default script(async ({ db, changes }) => {
  const seen = await changes("orders", { limit: 500 });
  const customers = new Set();
  for (const change of seen) {
    const order = await db.orders.get(change.id);
    if (order) customers.add(order.customer);
  }
  for (const customer of customers) {
    await db.customers.upsert({ id: customer, open: await db.orders.count({ customer, state: "open" }) });
  }
  return { changes: seen.length, customers: customers.size };
});
