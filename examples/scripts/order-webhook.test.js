import { test, expect } from "testing";

test("tells of each order once", { times: 2, seed: { orders: [{ id: "1", state: "paid", total: "5.00" }, { id: "2", state: "open" }] } },
  ({ runs, rows }) => {
    expect(runs.map((run) => run.result)).toEqual([["1"], []]);
    expect(rows.orders.map((order) => Boolean(order.told))).toEqual([true, false]);
  });
