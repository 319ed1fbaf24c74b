"use strict";
// The card page: one key an answer. Answers that are not saved yet stay in this browser and are sent again with the
// same key, so that none is lost and none counts twice.
(() => {
  const GUARD = 300; // milliseconds after a change of card in which keys do nothing: they were meant for the last one
  const page = document.getElementById("vetting");
  const place = document.getElementById("place");
  const state = document.getElementById("state");
  const trouble = document.getElementById("trouble");
  const ignored = document.getElementById("ignored");
  const keys = document.getElementById("keys");
  const texts = JSON.parse(document.getElementById("texts").textContent);
  const store = page.dataset.store;
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

  let shownAt = performance.now();
  let seen = 0; // milliseconds the card was in sight before it was hidden the last time
  let changedAt = -Infinity;
  let sending = false;
  let waits = 0;
  let retry = null;
  let lookAgain = null;

  // ---------------------------------------------------------------- what is not saved yet

  const unsent = () => {
    try { return JSON.parse(localStorage.getItem(store)) || []; } catch { return []; }
  };
  const keep = (replies) => {
    try {
      if (replies.length) localStorage.setItem(store, JSON.stringify(replies)); else localStorage.removeItem(store);
    } catch { memory = replies; }
  };
  let memory = null; // where the browser keeps nothing
  const queue = () => memory || unsent();
  const add = (reply) => keep([...queue(), reply]);
  const drop = (key) => keep(queue().filter((reply) => reply.key !== key));

  const say = (text) => { state.textContent = text; };
  const complain = (text) => { trouble.textContent = text; trouble.hidden = !text; };
  const tellUnsaved = () => {
    const n = queue().length;
    say(n === 0 ? "" : n === 1 ? texts.unsaved_one : fill(texts.unsaved, { n }));
  };

  const newKey = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(18));
    return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_");
  };

  async function post(path, body) {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), 20000);
    try {
      return await fetch(path, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
        credentials: "same-origin", cache: "no-store", signal: limit.signal,
      });
    } finally { clearTimeout(timer); }
  }

  async function flush() {
    if (sending) return;
    sending = true;
    clearTimeout(retry);
    let answer = null;
    try {
      while (queue().length) {
        const reply = queue()[0];
        let response;
        try { response = await post("reply", reply); } catch { response = null; }
        if (response && response.status === 401) { complain(texts.signed_out); later(); return; }
        if (!response || response.status >= 500 || response.status === 429) {
          if (!response || waits > 0) complain(texts.lost);
          later();
          return;
        }
        const body = await response.json().catch(() => ({}));
        drop(reply.key);
        if (response.ok) {
          answer = body;
          if (waits > 0) complain("");
        } else {
          complain(fill(texts.refused, { reason: body.error || response.status }));
          answer = { look: true };
        }
      }
      const wasLost = waits > 0;
      waits = 0;
      if (answer && answer.html !== undefined) show(answer.html);
      if (answer && answer.look) await look();
      say(wasLost ? texts.resent : answer && answer.html !== undefined ? texts.saved : "");
    } finally { sending = false; }
  }

  function later() {
    tellUnsaved();
    waits += 1;
    retry = setTimeout(flush, Math.min(15000, 500 * 2 ** waits));
  }

  // ---------------------------------------------------------------- cards

  const card = () => place.querySelector(".card");
  const numberOf = (element) => Number(element.closest("[data-card]").dataset.card);

  function show(html) {
    const hadFocus = place.contains(document.activeElement) || document.activeElement === document.body;
    const isOpen = place.querySelector(".guide[open]") !== null;
    place.innerHTML = html;
    for (const guide of place.querySelectorAll(".guide")) guide.open = isOpen;
    card().classList.add("fresh");
    begin();
    if (hadFocus) place.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  function begin() {
    shownAt = performance.now();
    changedAt = shownAt;
    seen = 0;
    clearTimeout(lookAgain);
    const empty = card().dataset.empty;
    if (empty !== undefined) lookAgain = setTimeout(look, Number(empty) * 1000);
    for (const image of place.querySelectorAll(".frame img")) {
      const fit = () => {
        const outline = image.parentElement.querySelector(".outline");
        if (outline) outline.setAttribute("viewBox", `0 0 ${image.naturalWidth} ${image.naturalHeight}`);
      };
      if (image.complete && image.naturalWidth) fit(); else image.addEventListener("load", fit);
      image.addEventListener("error", () => {
        const note = document.createElement("p");
        note.className = "note";
        note.textContent = image.dataset.missing;
        image.closest("figure").replaceWith(note);
      });
    }
  }

  async function get(path) {
    try {
      const response = await fetch(path, { credentials: "same-origin", cache: "no-store" });
      if (response.status === 401) { complain(texts.signed_out); return null; }
      return response.ok ? await response.json() : null;
    } catch { complain(texts.lost); return null; }
  }

  async function look() {
    const now = card();
    const body = await get("next");
    if (now !== card()) return; // another card came meanwhile
    if (body) {
      if (!queue().length) complain("");
      if (Number(now.dataset.card || 0) !== (body.card || 0) || !body.card) show(body.html);
    } else {
      clearTimeout(lookAgain);
      lookAgain = setTimeout(look, 5000);
    }
  }

  async function undo() {
    if (sending || queue().length) return; // what is on its way comes first
    const now = card();
    const before = now.querySelector("#keep") ? now.dataset.card : 0;
    const body = await get(`previous?before=${before}`);
    if (now !== card() || !body) return;
    if (body.html === undefined) say(texts.no_undo);
    else { show(body.html); say(fill(texts.back_card, { answer: body.answered })); }
  }

  function answer(button) {
    const form = button.form;
    let choice = button.value;
    if (choice === "other") {
      choice = form.elements.other.value;
      if (!choice) { form.elements.other.focus(); return; }
    }
    const inSight = seen + (document.hidden ? 0 : performance.now() - shownAt);
    add({
      card: numberOf(button), choice, key: newKey(), seconds: Math.round(inSight / 10) / 100,
      comment: form.elements.comment.value,
    });
    for (const other of form.querySelectorAll("button")) other.disabled = true; // a card takes one answer
    say(texts.sending);
    ignored.textContent = "";
    complain("");
    flush();
  }

  // ---------------------------------------------------------------- hands

  place.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.submitter) answer(event.submitter);
  });
  place.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.id === "undo") { event.preventDefault(); undo(); }
    if (link.id === "look" || link.id === "keep") { event.preventDefault(); get("next").then((body) => body && show(body.html)); }
  });

  const isField = (element) => element.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
  document.addEventListener("keydown", (event) => {
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.key === "Escape" && isField(target)) { target.blur(); return; }
    if (!keys.checked || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isField(target)) return;
    const key = event.key.toLowerCase();
    if (key === "m" && document.getElementById("comment")) {
      event.preventDefault();
      document.getElementById("comment").focus();
      return;
    }
    const chosen = [...place.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key);
    if (!chosen) return;
    event.preventDefault();
    const why = chosen.disabled ? texts.still_saving : performance.now() - changedAt < GUARD ? texts.too_early : "";
    ignored.textContent = fill(why, { key: event.key.toUpperCase() }); // it stays until the next key
    if (!why) chosen.click();
  });
  keys.checked = localStorage.getItem("trueup-keys") !== "off";
  keys.addEventListener("change", () => localStorage.setItem("trueup-keys", keys.checked ? "on" : "off"));

  // ---------------------------------------------------------------- time

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) seen += performance.now() - shownAt;
    else { shownAt = performance.now(); renew(); }
  });
  async function renew() {
    const now = card();
    if (document.hidden || !now || !now.dataset.card || now.querySelector("#keep") || queue().length) return;
    try {
      const response = await post("renew", { card: Number(now.dataset.card) });
      if (response.ok && !(await response.json()).held && now === card()) look(); // it went to somebody else
    } catch { /* the next time */ }
  }
  setInterval(renew, Number(page.dataset.renew) * 1000);
  window.addEventListener("online", () => { waits = Math.min(waits, 1); flush(); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  window.addEventListener("beforeunload", (event) => { if (queue().length) event.preventDefault(); });

  begin();
  changedAt = -Infinity; // a page that was just opened has no card before it
  if (queue().length) { tellUnsaved(); flush(); }
})();
