// Cases that nobody has answered for a day: one mail to the manager with the ten oldest.
export default async function ({ db, mail, now, action }) {
  const overdue = { state: "open", opened: { lt: now.subtract({ days: 1 }) } };
  const oldest = await db.tickets.find(overdue, { order: "opened", limit: 10 });
  const waiting = await db.tickets.count(overdue);
  if (waiting > 0) {
    await mail.send({
      to: action.input.manager,
      subject: `${waiting} cases without an answer for a day`,
      text: oldest.map((ticket) => `#${ticket.id} ${ticket.subject} (${ticket.email})`).join("\n"),
    });
  }
  return { waiting };
}
