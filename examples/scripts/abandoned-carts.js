// Reminds customers of a cart that they left a day ago, once, unless they have ordered meanwhile.
// Mail and mark are one transaction: a cart is marked exactly if its mail is sent.
export default script(async ({ db, mail, now }) => {
  const left = await db.carts.find({ touched: { lt: now.subtract({ days: 1 }) }, ordered: null, reminded: null }, { limit: 200 });
  for (const cart of left) {
    await mail.send({ to: cart.mail, subject: "You left something behind", text: cart.items.join("\n") });
    await db.carts.update(cart.id, { reminded: now });
  }
  return left.length;
});
