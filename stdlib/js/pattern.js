// URLPattern: the npm package urlpattern-polyfill, evaluated before as a module of CommonJS.
const { URLPattern } = $.module.exports;
$.global("URLPattern", URLPattern);
delete $.module;
