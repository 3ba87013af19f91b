// limits(): the budgets of this run, with used and remaining amounts.
$.provide("limits", (context, call) => {
  return function limits() {
    return call("limits.get", {});
  };
});
