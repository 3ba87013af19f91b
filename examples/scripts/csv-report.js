// Mails last month's orders as a CSV file on the first of the month.
// `formulas: "text"` keeps a spreadsheet from calculating what a customer has typed.
import { stringify } from "csv";

export default script(async ({ db, mail, now }) => {
  const end = now.toZonedDateTimeISO().with({ day: 1 }).startOfDay();
  const start = end.subtract({ months: 1 });
  const rows = [];
  for await (const order of db.orders.each({ paid: { gte: start, lt: end } }, { order: "paid" })) {
    rows.push({ id: order.id, customer: order.customer, total: order.total });
  }
  const month = start.toPlainDate().toString().slice(0, 7);
  await mail.send({
    to: "books@example.com",
    subject: `Orders of ${month}`,
    text: `${rows.length} orders`,
    attachments: [{ name: `orders-${month}.csv`, type: "text/csv", content: stringify(rows, { columns: ["id", "customer", "total"], formulas: "text" }) }],
  });
  return rows.length;
});
