// mail: sent when the run has succeeded, once into the outbox; never by a run that fails.
const NAMES = ["to", "subject", "text", "html", "replyTo"];

$.provide("mail", (context, call) =>
  Object.freeze({
    send(mail) {
      const line = $.wire.line();
      if (mail === null || typeof mail !== "object") throw new TypeError("a mail looks like { to, subject, text }");
      return call("mail.send", { ...$.wire.options("mail.send", mail, NAMES), line });
    },
  }),
);
