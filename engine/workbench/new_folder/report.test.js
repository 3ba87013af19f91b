import { test, expect } from "testing";

test(
  "counts open orders only",
  { seed: { orders: [{ id: "o1", state: "open" }, { id: "o2", state: "paid" }] } },
  ({ result, logs }) => {
    expect(result).toBe(1);
    expect(logs).toHaveLength(1);
  },
);

test("runs on weekdays", { schedule: "daily-report", now: "2027-01-04T00:00:00Z", for: "7d" }, ({ runs }) =>
  expect(runs).toHaveLength(5),
);
