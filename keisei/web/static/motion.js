// For those who want no motion, dialogs, menus and lists come and go at once: Quasar waits for the time of a fade, whatever the style says.
if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
  for (const name of ["QDialog", "QMenu", "QTooltip"]) Quasar[name].props.transitionDuration.default = 0;
  Quasar.QSlideTransition.props.duration.default = 0;
}
