// Tries to reach the other shop's rows in every way that the API leaves open. It finds its own rows only.
export default async function ({ db, action }) {
  const { victim, victimOrder } = action.input;
  const tries = {
    byKey: () => db.orders.get(victimOrder),
    byShop: () => db.orders.find({ shop: victim }, { limit: 5 }),
    byOr: () => db.orders.find({ or: [{ id: victimOrder }, { id: { lt: 0 } }] }, { limit: 5 }),
    byUpdate: () => db.orders.update(victimOrder, { state: "cancelled" }),
    byCode: () => [globalThis.process, globalThis.require].filter(Boolean),
  };
  const found = {};
  for (const [name, attempt] of Object.entries(tries)) {
    try {
      const rows = await attempt();
      found[name] = Array.isArray(rows) ? rows.length : rows ? 1 : 0;
    } catch (error) {
      found[name] = `refused (${error.code ?? error.name})`;
    }
  }
  return found;
}
