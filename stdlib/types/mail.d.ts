// mail: sent when the run has succeeded; a run that fails sends nothing.

interface Mail {
  to: string | string[];
  /** One line. */
  subject: string;
  text?: string;
  html?: string;
  replyTo?: string;
}

interface MailBox {
  send(mail: Mail): Promise<{ messageId: string }>;
}

declare const mail: MailBox;
