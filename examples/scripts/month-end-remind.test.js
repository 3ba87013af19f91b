import { test, expect } from "testing";

test("both steps run on the schedule", { schedule: "month-end", now: "2027-01-31T12:00:00Z", for: "1d", seed: {
  customers: [{ id: "ann", mail: "ann@example.com", reminders: 1 }, { id: "bea", mail: "bea@example.com" }],
  invoices: [
    { customer: "ann", state: "open", amount: 10, due: "2027-01-15" }, { customer: "ann", state: "open", amount: 5, due: "2027-01-20" },
    { customer: "bea", state: "paid", amount: 7, due: "2027-01-15" },
  ],
} }, ({ result, mails }) => {
  expect(result).toBe(1);
  expect(mails).toMatchObject([{ to: ["ann@example.com"], subject: "Reminder 2", text: "Open: 15 EUR" }]);
});
