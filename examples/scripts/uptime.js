// Watches a web page: three failures in a row raise one alarm, and the first success ends it.
// The state is one value, so that it is read and written with a single key.
export default script(async ({ kv, mail }) => {
  const state = (await kv.get("uptime")) ?? { failures: 0, alarm: false };
  let status = 0;
  try {
    status = (await fetch("https://www.example.com/health")).status;
  } catch (error) {
    console.warn(error instanceof Error ? error.message : error);
  }
  const failures = status === 200 ? 0 : state.failures + 1;
  const alarm = failures >= 3 || (state.alarm && failures > 0);
  if (alarm !== state.alarm) {
    await mail.send({ to: "ops@example.com", subject: alarm ? "www is down" : "www is up again", text: `Status ${status}` });
  }
  await kv.set("uptime", { failures, alarm });
  return { status, failures, alarm };
});
