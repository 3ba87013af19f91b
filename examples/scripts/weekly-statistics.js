// Mails last week's orders and revenue every Monday, counted by the database and summed as exact decimals.
// The week is that of the schedule's time zone, also when daylight saving changes.
import { decimal } from "decimal";

export default script(async ({ db, mail, now }) => {
  const today = now.toZonedDateTimeISO().startOfDay();
  const end = today.subtract({ days: today.dayOfWeek - 1 });
  const start = end.subtract({ weeks: 1 });
  let revenue = decimal(0);
  let orders = 0;
  for await (const order of db.orders.each({ paid: { gte: start, lt: end } }, { select: "total" })) {
    revenue = revenue.plus(order.total);
    orders += 1;
  }
  await mail.send({
    to: "boss@example.com",
    subject: `Week of ${start.toPlainDate()}: ${orders} orders`,
    text: `Revenue: ${revenue.toFixed(2)} EUR`,
  });
  return { orders, revenue: revenue.toFixed(2) };
});
