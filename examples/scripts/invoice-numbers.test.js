import { test, expect } from "testing";

test("continues the year's numbers", { times: 2, kv: { "invoices/2027": 41 }, seed: { orders: [
  { id: "b", state: "shipped", shipped: "2027-01-03" }, { id: "a", state: "shipped", shipped: "2027-01-02" }, { id: "c", state: "open" },
] } }, ({ runs, rows, kv }) => {
  expect(runs.map((run) => run.result)).toEqual([["2027-00042", "2027-00043"], []]);
  expect(rows.orders[0].invoice).toBe("2027-00042");
  expect(kv).toEqual({ "invoices/2027": 43 });
});
