// While a dialog is open, nothing behind it can be reached, by keys and screen readers either.
// Dialogs are children of the body, beside the page.
(() => {
  let before = null;
  new MutationObserver(() => {
    const page = document.getElementById("app"), isOpen = document.querySelector("body > [id^=q-portal--dialog]") !== null;
    if (!page || page.inert === isOpen) return;
    if (isOpen) before = document.activeElement;
    page.inert = isOpen;
    if (!isOpen && document.activeElement === document.body) before?.focus?.({ preventScroll: true });
  }).observe(document.body, { childList: true });
})();

// The options of a list that drops down are in an element that can have the focus: without a role it is none of a listbox's parts.
new MutationObserver(() => requestAnimationFrame(() => {
  for (const box of document.querySelectorAll("[role=listbox] .q-virtual-scroll__content:not([role])")) box.setAttribute("role", "group");
})).observe(document.body, { childList: true });
