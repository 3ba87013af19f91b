// Reminds customers of carts that they left a day ago. A bounded batch: the next run continues.
export default async function ({ db, mail, now }) {
  const cutoff = now.subtract({ days: 1 });
  const left = await db.carts.find({ state: "open", modified: { lt: cutoff } }, { order: "modified", limit: 3 });
  for (const cart of left) {
    await mail.send({
      to: cart.email,
      subject: "You left something behind",
      text: `${cart.items} items worth ${(cart.total_cents / 100).toFixed(2)} are waiting for you.`,
    });
    await db.carts.update(cart.id, { state: "reminded" });
  }
  return { reminded: left.length };
}
