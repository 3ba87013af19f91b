// mail: put into the outbox once, when the run has succeeded; never by a failed run.
const NAMES = ["to", "subject", "text", "html", "replyTo"];

$.provide("mail", (context, call) =>
  Object.freeze({
    send(mail) {
      const line = $.wire.line();
      if (mail === null || typeof mail !== "object") throw new TypeError("a mail must be an object like { to, subject, text }");
      return call("mail.send", { ...$.wire.options("mail.send", mail, NAMES), line });
    },
  }),
);
