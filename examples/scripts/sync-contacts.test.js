import { test, expect } from "testing";

/** @type {(number: number, more: object) => import("testing").RecordedFetch} */
const page = (number, more) => ({ url: `https://crm.example.com/contacts?page=${number}`, ...more });

test("continues after the rate limit", { times: 2, secrets: { CRM: "a-long-secret-value" }, fetches: [
  page(1, { json: { contacts: [{ id: "a", name: "Ann" }], next: 2 } }),
  page(2, { status: 429 }),
  page(2, { json: { contacts: [{ id: "b", name: "Bea" }, { id: "a", name: "Ann B." }], next: null } }),
] }, ({ runs, rows, kv, fetches }) => {
  expect(runs.map((run) => run.result)).toEqual([{ copied: 1, continueAt: 2 }, { copied: 2, continueAt: null }]);
  expect(rows.contacts).toMatchObject([{ id: "a", name: "Ann B." }, { id: "b" }]);
  expect(kv).toEqual({});
  expect(fetches.map((each) => each.status)).toEqual([200, 429, 200]);
});
