// events: sent to the tenant's webhooks when the run has succeeded.

interface Events {
  /** `await events.emit("order.paid", { id: order.id })`: lower-case words separated by dots, and up to 64 KiB of JSON. */
  emit(name: string, data?: any): Promise<null>;
}

declare const events: Events;
