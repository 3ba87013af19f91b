import { test, expect } from "testing";

const time = "1799049600";
/** @type {(signature: string, text: string, json?: unknown) => Record<string, unknown>} */
const request = (signature, text, json) => ({
  method: "POST", query: "", headers: { "x-slack-signature": signature, "x-slack-request-timestamp": time }, text, json,
});
const given = {
  seed: { items: [{ id: "lamp", stock: 3 }] },
  secrets: { SLACK_SIGNING: "a-long-signing-secret" },
  grants: ["collections", "secret:SLACK_SIGNING:plain"],
};
const command = "command=%2Fstock&text=lamp";
const challenge = "{\"type\":\"url_verification\",\"challenge\":\"c-1\"}";
const signature = "v0=d38ce630338974b73401a532344c9b0876d35ef54d17c9342a5fe14a62ca2730";

test("answers a signed command", { ...given, input: request(signature, command, null) }, ({ result }) => {
  expect(result).toEqual({ status: 200, body: { text: "lamp: 3 in stock" } });
});

test("answers Slack's check of the address",
  { ...given, input: request("v0=f37b7789bb67e20266e8df81ea1070074509ae6c9091b7456eed890ed49c8260", challenge, JSON.parse(challenge)) },
  ({ result }) => expect(result).toEqual({ status: 200, body: "c-1" }));

test("refuses another's command", { ...given, input: request(signature, command + "s", null) }, ({ result }) => {
  expect(result.status).toBe(401);
});
