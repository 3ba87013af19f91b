import { test, expect } from "testing";

const url = "https://www.example.com/health";

test("one alarm, one all-clear", { times: 6, fetches: [500, 500, 503, 500, 200].map((status) => ({ url, status })) }, ({ mails, result }) => {
  expect(mails.map((mail) => mail.subject)).toEqual(["www is down", "www is up again"]);
  expect(result).toEqual({ status: 200, failures: 0, alarm: false });
});
