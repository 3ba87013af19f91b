// mail: sent when the run has succeeded, once into the outbox; never by a run that fails.
$.provide("mail", (context, call) =>
  Object.freeze({
    send(mail) {
      const line = $.wire.line();
      if (mail === null || typeof mail !== "object") throw new TypeError("a mail looks like { to, subject, text }");
      return call("mail.send", { ...mail, line });
    },
  }),
);
