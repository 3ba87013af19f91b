import { test, expect } from "testing";

const text = "{\"type\":\"checkout.session.completed\",\"data\":{\"object\":{\"client_reference_id\":\"o1\"}}}";
const signature = "t=1799049600,v1=26bf85b3a3bd92b742dfc3a249ce7e389006fec7929f6e5ffdab0c6debd3e4b1";
/** @type {(signed: string) => Record<string, unknown>} */
const request = (signed) => ({ method: "POST", query: "", headers: { "stripe-signature": signed }, text, json: JSON.parse(text) });
const given = {
  seed: { orders: [{ id: "o1", state: "open" }] },
  secrets: { STRIPE_WEBHOOK: "a-long-signing-secret" },
  grants: ["collections", "secret:STRIPE_WEBHOOK:plain"],
};

test("marks the order of a signed event as paid", { ...given, input: request(signature) }, ({ result, rows }) => {
  expect(result).toEqual({ paid: "o1" });
  expect(rows.orders.map((order) => order.state)).toEqual(["paid"]);
});

test("refuses an event that Stripe has not signed", { ...given, input: request(signature.replace("v1=2", "v1=0")), outcome: "script_error" },
  ({ error, rows }) => {
    expect(error?.message).toBe("the signature is not Stripe's");
    expect(rows.orders.map((order) => order.state)).toEqual(["open"]);
  });
