"use strict";
// The owner's page: parts come anew from the server, pushed where the connection allows it, else asked for.
(() => {
  const main = document.getElementById("overview");
  const linkState = document.getElementById("link-state");
  const parts = { live: document.getElementById("live"), recent: document.getElementById("recent") };
  const EVERY = 5000;
  let timer = null;
  let source = null;
  let failures = 0;

  function put(body) {
    for (const [name, element] of Object.entries(parts)) {
      if (!element || body[name] === undefined || element.contains(document.activeElement)) continue;
      const open = element.querySelector("details[open]") !== null;
      element.innerHTML = body[name];
      if (open) for (const details of element.querySelectorAll("details")) details.open = true;
    }
  }

  async function ask() {
    try {
      const response = await fetch("owner-state", { credentials: "same-origin", cache: "no-store" });
      if (response.ok) put(await response.json());
    } catch { /* the next time */ }
  }

  function poll() {
    if (timer) return;
    linkState.textContent = main.dataset.polling;
    timer = setInterval(() => { if (!document.hidden) ask(); }, EVERY);
  }

  function listen() {
    if (!window.EventSource) { poll(); return; }
    source = new EventSource("owner-events");
    source.addEventListener("open", () => { failures = 0; linkState.textContent = main.dataset.live; clearInterval(timer); timer = null; });
    source.addEventListener("state", (event) => put(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      failures += 1;
      poll();
      if (source.readyState === EventSource.CLOSED || failures > 5) {
        source.close();
        setTimeout(listen, 30000);
      }
    });
  }

  window.addEventListener("pagehide", () => { if (source) source.close(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  listen();
})();
