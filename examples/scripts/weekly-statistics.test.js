import { test, expect } from "testing";

test("counts the week of the schedule's zone", {
  schedule: "weekly-statistics", now: "2027-03-26T00:00:00Z", for: "7d",
  seed: { orders: [
    { total: "0.10", paid: new Date("2027-03-21T22:59:59Z") }, // still Sunday in Berlin
    { total: "10.10", paid: new Date("2027-03-21T23:00:00Z") },
    { total: "0.20", paid: new Date("2027-03-28T21:59:59Z") }, // clocks have changed
    { total: "5.00", paid: new Date("2027-03-28T22:00:00Z") },
  ] },
}, ({ result, runs, mails }) => {
  expect(runs).toHaveLength(1);
  expect(result).toEqual({ orders: 2, revenue: "10.30" });
  expect(mails[0].subject).toBe("Week of 2027-03-22: 2 orders");
});
