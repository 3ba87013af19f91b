import { test, expect } from "testing";

test("warns once", { times: 2, seed: { tanks: [{ id: "A", litres: 5, minimum: 10 }, { id: "B", litres: 50, minimum: 10 }] } },
  ({ mails, kv }) => {
    expect(mails.map((mail) => mail.subject)).toEqual(["A is low: 5 l"]);
    expect(kv).toEqual({ "warned/A": true });
  });

test("tells when it is over", { kv: { "warned/A": true }, seed: { tanks: [{ id: "A", litres: 50, minimum: 10 }] } }, ({ mails, kv }) => {
  expect(mails[0].subject).toBe("A has recovered");
  expect(kv).toEqual({});
});
