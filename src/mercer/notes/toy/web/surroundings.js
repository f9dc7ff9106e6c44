// What is around the page: the site into which it is embedded, whose theme it follows and whose frame it fills.

// The element of the embedding page, or null: alone, and where that page is of another origin, as local files are.
function ofSite(find) {
  if (window.parent === window) return null;
  try {
    return find();
  } catch {
    return null;
  }
}

// Calls `apply` with "dark" or "light" whenever the reader switches the theme of the site (furo's body[data-theme]), and
// with undefined if the site leaves it to the system. Returns whether there is such a site.
export function followTheme(apply) {
  const body = ofSite(() => window.parent.document.body);
  if (!body?.dataset.theme) return false;
  const read = () => apply({ dark: "dark", light: "light" }[body.dataset.theme]);
  new MutationObserver(read).observe(body, { attributes: true, attributeFilter: ["data-theme"] });
  read();
  return true;
}

// Makes the frame as high as the page in it.
export function fitFrame() {
  const frame = ofSite(() => window.frameElement);
  if (!frame) return;
  frame.style.boxSizing = "border-box";
  new ResizeObserver(() => {
    const borders = frame.offsetHeight - frame.clientHeight;
    frame.style.height = `${Math.ceil(document.body.getBoundingClientRect().height) + borders}px`;
  }).observe(document.body);
}
