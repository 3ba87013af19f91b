// limits(): every budget that this run is under, what of it is used and what is left.
$.provide("limits", (context, call) => {
  return function limits() {
    return call("limits.get", {});
  };
});
