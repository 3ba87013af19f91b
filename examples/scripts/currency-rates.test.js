import { test, expect } from "testing";

const url = "https://rates.example.com/latest?base=EUR";

test("stores each rate once a day", { times: 2, fetches: [{ url, json: { rates: { USD: 1.1, CHF: 0.95 } } }] }, ({ result, rows }) => {
  expect(result).toEqual({ day: "2027-01-04", currencies: 2 });
  expect(rows.rates.map((row) => [row.id, row.rate])).toEqual([["2027-01-04-CHF", 0.95], ["2027-01-04-USD", 1.1]]);
});

test("fails when the bank does", { outcome: "script_error", fetches: [{ url, status: 503 }] }, ({ error, rows }) => {
  expect(error?.message).toBe("the bank answered 503");
  expect(rows).toEqual({});
});
