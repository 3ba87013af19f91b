// What a platform in TypeScript does with the client; each `@ts-expect-error` is a call that the compiler refuses.
import { Lodger, LodgerError, type LiveEvent, type Schemas } from "lodger-client";

declare const process: { argv: string[] };
const [, , url = "", token = ""] = process.argv;
const lodger = new Lodger(url, token);
const path = { tenant_id: "node" };
const equal = (found: unknown, wanted: unknown) => {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${JSON.stringify(found)} and not ${JSON.stringify(wanted)}`);
};
const refused = async (call: Promise<unknown>) => {
  try { await call; } catch (error) { if (error instanceof LodgerError) return error; throw error; }
  throw new Error("accepted");
};

const tenant: Schemas["Tenant"] = await lodger.post("/tenants", { body: { tenant_id: "node", name: "Node & Söhne" }, why: "für Node" });
equal([tenant.state, tenant.name], ["active", "Node & Söhne"]);
await lodger.put("/tenants/{tenant_id}/scripts/{name}", { path: { ...path, name: "job" }, body: { source: { "main.js": "export default () => 1" } } });
const body = { name: "nightly", script: "job", rules: "every weekday at 09:00", tz: "Europe/Berlin", overlap: "queue_one" as const };
const made = await lodger.post("/tenants/{tenant_id}/schedules", { path, body, idempotencyKey: "one" });
const again = await lodger.post("/tenants/{tenant_id}/schedules", { path, body, idempotencyKey: "one" });
equal([made.overlap, made.rules.exclusions, again.id], ["queue_one", [], made.id]);
for (let n = 0; n < 5; n++) await lodger.post("/tenants/{tenant_id}/schedules", { path, body: { ...body, name: `s${n}` } });
const names: string[] = [];
for await (const each of lodger.all("/tenants/{tenant_id}/schedules", { path, query: { limit: 2 } })) names.push(each.name);
equal(names, ["nightly", "s0", "s1", "s2", "s3", "s4"]);
const preview = await lodger.post("/preview", { body: { rules: ["0 9 * * 1-5"], tz: "Europe/Berlin", n: 3 } });
equal(preview.slots.length, 3);
const edited = await lodger.patch("/tenants/{tenant_id}/schedules/{schedule}", { path: { ...path, schedule: "nightly" }, body: { overlap: "skip" } });
equal([edited.overlap, edited.revision], ["skip", 2]);
const wrong = await refused(lodger.post("/tenants/{tenant_id}/schedules", { path, body: { ...body, name: "x", rules: "evry day at 9" } }));
equal([wrong.status, wrong.code, wrong.problem.fix?.includes("`every day at 9`")], [422, "english_unclear", true]);
equal((await refused(lodger.get("/tenants/{tenant_id}", { path: { tenant_id: "no söhne" } }))).status, 404);
equal((await lodger.get("/metrics/text")).includes("lodger_"), true);
const module = { path: { ...path, name: "wasm" }, body: new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]) };
equal((await refused(lodger.put("/tenants/{tenant_id}/scripts/{name}/module", module))).status, 422);
await lodger.delete("/tenants/{tenant_id}/schedules/{schedule}", { path: { ...path, schedule: "s4" } });

// @ts-expect-error: there is no such route
lodger.get.bind(lodger, "/tenant");
// @ts-expect-error: nor such a policy
void ((): Parameters<typeof lodger.post<"/tenants/{tenant_id}/schedules">> => ["/tenants/{tenant_id}/schedules", { path, body: { ...body, overlap: "twice" } }]);
// @ts-expect-error: the body needs an id
void ((): Parameters<typeof lodger.post<"/tenants">> => ["/tenants", { body: { name: "x" } }]);
// @ts-expect-error: a tenant has no such field
void (tenant.nope);

// The stream breaks after the first change and is continued after it.
const asked: (string | null)[] = [];
const breaking: typeof fetch = async (target, given) => {
  const answer = await fetch(target, given);
  asked.push(new Headers(given?.headers).get("last-event-id"));
  if (asked.length > 1 || !answer.body) return answer;
  const reader = answer.body.getReader();
  return new Response(new ReadableStream<Uint8Array>({
    async pull(sink) {
      const { value } = await reader.read();
      sink.enqueue(value!);
      if (new TextDecoder().decode(value).includes("event:")) { await reader.cancel(); sink.error(new TypeError("terminated")); }
    },
  }), { status: answer.status });
};
const run = () => lodger.post("/tenants/{tenant_id}/schedules/{schedule}/run-now", { path: { ...path, schedule: "s0" }, body: {} });
const changes = new Lodger(url, token, breaking).live("node", { waitMs: 10 });
const seen: LiveEvent[] = [];
const wanted: string[] = [];
const following = (async () => {
  for await (const each of changes) if (seen.push(each) === 4) return;
})();
const until = async (done: () => boolean) => { while (!done()) await new Promise((resolve) => setTimeout(resolve, 5)); };
await until(() => asked.length === 1);
wanted.push((await run()).id);
await until(() => seen.length === 1);
for (let n = 0; n < 3; n++) wanted.push((await run()).id);
await following;
equal(seen.map((each) => each.event === "action" && each.data.id), wanted);
equal([asked.length, asked[0], typeof asked[1]], [2, null, "string"]);
const said = async (call: Promise<unknown>) => call.then(() => "answered", (error: Error) => `${error.name} ${error.message}`);
for (const name of ["..", ".", ""]) {
  const refused = `RangeError name: "${name}" is not a name`;
  equal(await said(lodger.post("/tenants/{tenant_id}/scripts/{name}/suspend", { path: { ...path, name } })), refused);
}
equal(await said(lodger.live("..").next()), 'RangeError tenant_id: ".." is not a name');
await lodger.post("/tenants/{tenant_id}/suspend", { path });
const archive = await lodger.get("/tenants/{tenant_id}/archive", { path });
equal([archive instanceof Uint8Array, archive[0]], [true, 0x1f]);
console.log("every call was answered");
