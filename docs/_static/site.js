// Buttons that copy code, and frames as high as the page in them.

// Of a session, what was typed; of a shell block, the commands without a prompt.
function typed(text) {
  const lines = text.replace(/\n+$/, "").split("\n");
  const session = lines.some((line) => /^(>>>|\.\.\.)( |$)/.test(line));
  const kept = session ? lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4)) : lines;
  return kept.map((line) => line.replace(/^\$ /, "")).join("\n") + "\n";
}

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// Two sheets of paper; a tick once they are copied.
const icon = (path) => `<svg viewBox="0 0 16 16" width="15" height="15" fill="none" stroke="currentColor" aria-hidden="true">${path}</svg>`;
const SHEETS = icon('<rect x="5.5" y="5.5" width="8" height="9" rx="1.5"/><path d="M3 10.5v-8a1 1 0 0 1 1-1h6.5"/>');
const TICK = icon('<path d="m3 8.5 3.5 3.5L13 4.5"/>');

for (const block of document.querySelectorAll("div.highlight")) {
  if (block.closest(".highlight-text, .sphx-glr-script-out")) continue; // what a program printed
  const pre = block.querySelector("pre");
  const button = Object.assign(document.createElement("button"), { className: "copy", type: "button", innerHTML: SHEETS, title: "Copy" });
  button.setAttribute("aria-label", "Copy this code");
  button.addEventListener("click", async () => {
    await copy(typed(pre.textContent));
    button.innerHTML = TICK;
    setTimeout(() => { button.innerHTML = SHEETS; }, 1500);
  });
  block.append(button);
}

// Where the site comes from a server, a page may look into its frames. Elsewhere site.css guesses their height.
for (const frame of document.querySelectorAll("iframe.toy")) {
  frame.addEventListener("load", () => {
    let inside = null;
    try {
      inside = frame.contentDocument;
    } catch {
      return;
    }
    if (!inside || !inside.body) return;
    const fit = () => { frame.style.height = `${Math.ceil(inside.body.getBoundingClientRect().height) + 4}px`; };
    new ResizeObserver(fit).observe(inside.body);
    fit();
  });
}
