// mail: put into the outbox once, when the run has succeeded; never by a failed run.
const { isArray } = Array;
const NAMES = ["to", "cc", "bcc", "subject", "text", "html", "replyTo", "senderName", "attachments"];

$.provide("mail", (context, call) =>
  Object.freeze({
    send(mail) {
      const line = $.wire.line();
      if (mail === null || typeof mail !== "object") throw new TypeError("a mail must be an object like { to, subject, text }");
      const { attachments, ...given } = $.wire.options("mail.send", mail, NAMES);
      return call("mail.send", { ...given, attachments: isArray(attachments) && attachments.length === 0 ? undefined : $.wire.encode(attachments), line });
    },
  }),
);
