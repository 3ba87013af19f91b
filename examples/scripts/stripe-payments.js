// Marks orders as paid when Stripe says so. Create its URL with:
//   lodger url create acme stripe stripe-payments --headers stripe-signature
// The signature is verified over the body as it came; the grant secret:STRIPE_WEBHOOK:plain lets the script read the endpoint's secret.
const TOLERANCE_S = 300;

export default script(async ({ action, db, now, secrets }) => {
  const { headers, text } = action.input;
  await verify(headers["stripe-signature"] ?? "", text ?? "", await secrets.read("STRIPE_WEBHOOK"), now);
  const event = action.input.json;
  if (event.type !== "checkout.session.completed") return { ignored: event.type };
  const order = event.data.object.client_reference_id;
  await db.orders.update(order, { state: "paid" });
  return { paid: order };
});

/** @type {(header: string, body: string, secret: string, now: Instant) => Promise<void>} */
async function verify(header, body, secret, now) {
  const parts = header.split(",").map((part) => part.split("="));
  const time = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (Math.abs(now.epochMilliseconds / 1000 - Number(time)) > TOLERANCE_S) throw new Error("the event is too old");
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  for (const [name, hex] of parts)
    if (name === "v1" && (await crypto.subtle.verify("HMAC", key, Uint8Array.fromHex(hex), bytes.encode(time + "." + body)))) return;
  throw new Error("the signature is not Stripe's");
}
