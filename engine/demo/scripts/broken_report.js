// A mistake that everybody makes: the newest order may be absent, and the field is called "email".
export default async function ({ db }) {
  const [newest] = await db.orders.find({}, { order: "-placed", limit: 1 });
  console.log(`newest order is ${newest.id}`);
  const domain = newest.customer.address.split("@")[1];
  return { domain };
}
