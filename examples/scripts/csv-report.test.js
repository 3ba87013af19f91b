import { test, expect } from "testing";

test("attaches the month, without formulas", { now: "2027-02-01T06:00:00Z", seed: { orders: [
  { id: "1", customer: "=cmd()", total: "1.50", paid: new Date("2027-01-31T12:00:00Z") },
  { id: "2", customer: "Bea", total: "2.00", paid: new Date("2027-02-01T00:00:00Z") },
] } }, ({ result, mails }) => {
  expect(result).toBe(1);
  expect(mails[0].subject).toBe("Orders of 2027-01");
  expect(mails[0].attachments[0].name).toBe("orders-2027-01.csv");
});
