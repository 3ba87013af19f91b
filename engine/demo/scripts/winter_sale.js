// A one-off at a date: twenty products get their sale price.
export default async function ({ db, action }) {
  const { percent } = action.input;
  const products = await db.products.find({ sale_cents: null, stock: { gt: 0 } }, { order: "-stock", limit: 20 });
  for (const product of products) {
    await db.products.update(product.id, { sale_cents: Math.round((product.price_cents * (100 - percent)) / 100) });
  }
  return { reduced: products.length, percent };
}
