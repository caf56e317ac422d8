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
