import { test, expect } from "testing";

test("counts once after changes", { schedule: "consume-changes", now: "2027-01-04T08:01:00Z", for: "20m", seed: { orders: [
  { id: "1", customer: "ann", state: "open" }, { id: "2", customer: "ann", state: "paid" }, { id: "3", customer: "bea", state: "open" },
] } }, ({ runs, rows }) => {
  expect(runs.map((run) => run.result.changes)).toEqual([3, 0]);
  expect(rows.customers).toEqual([{ id: "ann", open: 1 }, { id: "bea", open: 1 }]);
});
