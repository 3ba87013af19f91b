// Answers the Slack command /stock ITEM and Slack's check of the address. Create its URL with:
//   lodger url create acme slack slack-command --answers --headers x-slack-signature --headers x-slack-request-timestamp
// The grant secret:SLACK_SIGNING:plain lets the script read the app's signing secret.
const TOLERANCE_S = 300;

export default script(async ({ action, db, now, secrets }) => {
  const { headers, text, json } = action.input;
  const time = headers["x-slack-request-timestamp"] ?? "";
  if (Math.abs(now.epochMilliseconds / 1000 - Number(time)) > TOLERANCE_S) return { status: 401, body: "too old" };
  const bytes = new TextEncoder();
  const secret = bytes.encode(await secrets.read("SLACK_SIGNING"));
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const signature = Uint8Array.fromHex((headers["x-slack-signature"] ?? "").replace("v0=", ""));
  if (!(await crypto.subtle.verify("HMAC", key, signature, bytes.encode(`v0:${time}:${text}`)))) return { status: 401, body: "not Slack" };
  if (json?.type === "url_verification") return { status: 200, body: json.challenge };
  const item = new URLSearchParams(text).get("text") ?? "";
  const found = await db.items.get(item);
  return { status: 200, body: { text: found ? `${item}: ${found.stock} in stock` : `there is no ${item}` } };
});
