// Small helpers on top of htmx. Every page works without this file.
(function () {
  "use strict";

  const root = document.documentElement;
  root.classList.add("js");

  const byId = (id) => document.getElementById(id);
  const isTyping = (node) =>
    node instanceof Element && (node.matches("input, textarea, select") || node.isContentEditable);

  // Messages.

  function toast(tone, text, retry) {
    const list = byId("toasts");
    const template = byId("toast-" + tone);
    if (!list || !template) return;
    for (const old of list.children) if (old.querySelector("p").textContent === text) old.remove();
    const item = template.content.firstElementChild.cloneNode(true);
    item.querySelector("p").textContent = text;
    const button = item.querySelector("button");
    if (retry) {
      button.textContent = "Retry";
      button.addEventListener("click", () => { item.remove(); retry(); });
    } else {
      button.addEventListener("click", () => item.remove());
    }
    list.append(item);
    if (!retry && tone !== "bad") window.setTimeout(() => item.remove(), 8000);
  }

  // What assistive technology hears of a plan: at most one sentence a second.
  let saidAt = 0;
  let sayTimer = 0;
  function say(text) {
    const region = byId("plan-say");
    if (!region || !text) return;
    window.clearTimeout(sayTimer);
    const wait = Math.max(0, 1000 - (Date.now() - saidAt));
    sayTimer = window.setTimeout(() => { saidAt = Date.now(); region.textContent = text; }, wait);
  }

  // The plan panel: newest answer wins, and what was open stays open.

  function numbered(form) {
    return form && form.elements ? form.elements.namedItem("seq") : null;
  }

  document.addEventListener("htmx:configRequest", (event) => {
    const field = numbered(event.detail.elt.closest("form"));
    if (!field || event.detail.verb !== "post") return;
    field.value = String(Number(field.value) + 1);
    event.detail.parameters.set("seq", field.value);
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { target, xhr } = event.detail;
    if (target.id === "plan") target.toggleAttribute("data-stale", xhr.status === 422);
    if (event.detail.successful) event.detail.elt.removeAttribute("data-renewed");
  });

  // A tab that nobody sees asks for nothing.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.detail.elt.closest("[data-poll]")) event.preventDefault();
    else event.detail.target.setAttribute("aria-busy", "true");
  });

  let kept = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, xhr, requestConfig } = event.detail;
    const field = numbered(requestConfig.elt.closest("form"));
    const answered = xhr.getResponseHeader("X-Sequence");
    const refused = xhr.status === 403 || xhr.status === 404; // what the form shows stays
    if (field && (refused || (answered !== null && Number(answered) < Number(field.value)))) {
      event.detail.shouldSwap = false;
      return;
    }
    kept = null;
    if (target.id !== "plan" || !event.detail.shouldSwap) return;
    kept = {
      shown: target.matches(":popover-open"),
      top: target.scrollTop,
      open: Array.from(target.querySelectorAll("details[open][data-key]"), (node) => node.dataset.key),
    };
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    const panel = byId("plan");
    if (!panel || event.detail.target.id !== "plan") return;
    say(panel.dataset.say);
    if (!kept) return;
    for (const key of kept.open) {
      const node = panel.querySelector('details[data-key="' + key + '"]');
      if (node) node.open = true;
    }
    if (kept.shown) panel.showPopover();
    panel.scrollTop = kept.top;
    kept = null;
  });

  // Failures: nothing typed is lost, and a person hears of it.

  function again(element) {
    return () => window.htmx.trigger(element, element.matches("form") ? "change" : "click");
  }

  document.addEventListener("htmx:afterRequest", (event) => {
    event.detail.target.removeAttribute("aria-busy");
    const poll = event.detail.elt.closest("[data-poll]");
    if (poll) countPoll(poll, event.detail.successful);
  });

  function failed(event) {
    const { elt, target, xhr } = event.detail;
    if (elt.closest("[data-poll]")) return;
    if (target && target.id === "plan") target.setAttribute("aria-busy", "true");
    const status = xhr ? xhr.status : 0;
    const form = elt.closest("form[data-guard]");
    if (status === 403 && form && form.dataset.renewed !== "yes") {
      form.dataset.renewed = "yes";
      reached(form, again(elt));
      return;
    }
    if (status === 429) {
      const seconds = Number(xhr.getResponseHeader("Retry-After")) || 1;
      toast("warn", "Too many previews. Counting again in " + seconds + " s.");
      window.setTimeout(again(elt), seconds * 1000);
    } else if (status === 403 || status === 404) {
      toast("warn", status === 403 ? "You may not do this." : "This is no longer there.");
    } else {
      toast("bad", "The server did not answer as it should; what you typed is still here.", again(elt));
    }
  }
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, failed);
  }

  function countPoll(node, successful) {
    const missed = successful ? 0 : Number(node.dataset.missed || 0) + 1;
    node.dataset.missed = String(missed);
    const notice = byId("paused");
    if (notice) notice.hidden = missed < 3;
  }

  // A sign-in that ran out while somebody typed must not take the page away with what was typed.
  const SIGNED_OUT = "You are signed out. What you typed is still here: sign in in another tab, then try again.";
  const isSignIn = (path) => path.startsWith("/login/");
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    if (!isSignIn(xhr.getResponseHeader("HX-Redirect") || "")) return;
    if (!document.querySelector("form[data-guard][data-edited]")) return;
    event.preventDefault();
    if (!elt.closest("[data-poll]")) toast("warn", SIGNED_OUT, again(elt));
  });

  // Forms: sent once; leaving with edits asks first. A form under a version, which holds long edits, is sent only when
  // its page still answers: a sign-in that ran out, a thing that is gone or a server that is away would cost them.

  // Calls `next` when the page of a form answers, with its fresh token in the form; otherwise says why not.
  async function reached(form, next) {
    const refuse = (tone, text, retry) => {
      delete form.dataset.sent;
      toast(tone, text, retry ? () => reached(form, next) : null);
    };
    let text = "";
    try {
      const answer = await fetch(form.getAttribute("action"), { signal: AbortSignal.timeout(15000) });
      if (answer.redirected && isSignIn(new URL(answer.url).pathname)) return refuse("warn", SIGNED_OUT, true);
      if (answer.status === 404) return refuse("bad", "This is no longer there, so nothing was saved. What you typed is still here: copy what you need.");
      if (answer.status >= 500) throw new Error(String(answer.status));
      text = await answer.text();
    } catch {
      return refuse("bad", "Not saved: the server did not answer as it should. What you typed is still here.", true);
    }
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("input[name=csrfmiddlewaretoken]");
    if (fresh) {
      for (const field of document.querySelectorAll("input[name=csrfmiddlewaretoken]")) field.value = fresh.value;
      document.body.setAttribute("hx-headers", JSON.stringify({ "x-csrftoken": fresh.value }));
    }
    return next();
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method === "get" || event.defaultPrevented) return;
    if (form.dataset.sent === "yes" || form.dataset.sent === "asks") { event.preventDefault(); return; }
    if (form.matches("[data-guard]") && form.elements.version && form.dataset.sent !== "reached") {
      event.preventDefault();
      form.dataset.sent = "asks";
      const button = event.submitter;
      reached(form, () => {
        form.dataset.sent = "reached";
        form.requestSubmit(button && button.form === form ? button : null);
      });
      return;
    }
    form.dataset.sent = "yes";
    window.setTimeout(() => {
      for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = true;
    }, 0);
  });

  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = false;
    }
  });

  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-guard]");
    if (form) form.dataset.edited = "yes";
  });
  window.addEventListener("beforeunload", (event) => {
    if (document.querySelector("form[data-guard][data-edited]:not([data-sent=yes])")) event.preventDefault();
  });

  document.addEventListener("change", (event) => {
    const field = event.target;
    if (field.matches("[data-submit]")) field.form.requestSubmit();
  });

  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-narrow]")) return;
    const words = event.target.value.trim().toLowerCase();
    for (const row of document.querySelectorAll("#" + event.target.dataset.narrow + " > tbody > tr")) {
      row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
    }
  });

  // In the what-if form a pick fills its field and a reset empties it, without leaving the page.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-set], button[data-empty]");
    if (!button) return;
    event.preventDefault();
    const field = byId(button.dataset.set || button.dataset.empty);
    if (field.type === "checkbox") field.checked = false;
    else field.value = button.dataset.value || "";
    field.focus();
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });

  // 32k is 32 x 1,024, as the server reads it.
  function tokens(text) {
    const plain = text.trim().replaceAll(",", "");
    return /^[0-9.]+k$/i.test(plain) ? Number(plain.slice(0, -1)) * 1024 : Number(plain || NaN);
  }

  // The slider beside a window moves its field, and follows it. RoPE scaling lifts its end.
  document.addEventListener("DOMContentLoaded", () => {
    for (const slider of document.querySelectorAll("input[data-slide]")) {
      const field = byId(slider.dataset.slide);
      const follow = () => {
        const rope = field.form.elements.ropeScaling;
        const scaled = rope && rope.value !== "" && rope.value !== "none";
        slider.max = scaled ? slider.dataset.scaled : slider.dataset.trained;
        slider.value = tokens(field.value) || tokens(field.placeholder) || slider.max;
        slider.setAttribute("aria-valuetext", Number(slider.value).toLocaleString("en") + " tokens");
      };
      slider.addEventListener("input", () => {
        field.value = slider.value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      });
      slider.addEventListener("change", () => field.dispatchEvent(new Event("change", { bubbles: true })));
      field.form.addEventListener("input", follow);
      field.form.addEventListener("change", follow);
      slider.hidden = false;
      follow();
    }
  });

  // A field is one control, or a row of radios of which the first says nothing.
  function saysSomething(row, field) {
    const chosen = row.querySelector("input[type=radio]:checked");
    if (chosen) return chosen.value !== "" && chosen.value !== "inherit";
    return field.type === "checkbox" ? field.checked : field.value.trim() !== "";
  }

  function emptyField(row) {
    const first = row.querySelector("input[type=radio]");
    if (first) first.checked = true;
    for (const field of row.querySelectorAll(".form-control, .form-select")) field.value = "";
    for (const field of row.querySelectorAll("input[type=checkbox]")) field.checked = false;
  }

  // In the editor a reset empties a field or a group, without leaving the page.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-clear], button[data-clear-group]");
    if (!button) return;
    event.preventDefault();
    const rows = button.dataset.clear
      ? [button.closest(".q-f")]
      : button.closest("fieldset").querySelectorAll(".q-f");
    rows.forEach(emptyField);
    const field = rows[0].querySelector("input, select, textarea");
    if (button.dataset.clear) field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });

  // Typing a variant's own value chooses it.
  document.addEventListener("input", (event) => {
    const row = event.target.closest(".q-f");
    const own = row && event.target.matches(".q-wide .form-control") && row.querySelector("input[type=radio][value=set]");
    if (own) own.checked = true;
  });

  // The field itself is never swapped while somebody types in it: its marks follow the slots beside it.
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const slot = event.detail.elt || event.target;
    if (!slot.id || !slot.id.startsWith("e-")) return;
    const row = slot.closest(".q-f");
    const field = byId("f-" + slot.id.slice(2)) || (row && row.querySelector("input[type=radio]"));
    if (!field || !row) return;
    const bad = slot.querySelector(".q-err") !== null;
    if (bad) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
    row.classList.toggle("bad", bad);
    row.classList.toggle("set", !field.disabled && saysSomething(row, field));
    for (const pick of row.querySelectorAll("button[data-set]")) {
      const same = pick.dataset.value === field.value || Number(pick.dataset.value) === tokens(field.value);
      pick.setAttribute("aria-pressed", String(same));
    }
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = byId(button.dataset.copy);
    navigator.clipboard.writeText(source.dataset.text || source.textContent).then(
      () => toast("ok", "Copied."),
      () => toast("bad", "The browser did not allow copying."),
    );
  });

  // Keys.

  // Rows of tables: the focus is on the link of one, or on a row of its own that has none.
  const heldBy = (row) => (row.hidden ? null : row.hasAttribute("tabindex") ? row : row.querySelector("a"));
  function rowOf(node) {
    let row = node instanceof Element ? node.closest("tbody > tr") : null;
    for (let outer = row; outer; outer = outer.parentElement.closest("tbody > tr")) row = outer;
    return row;
  }

  // Between rows; j begins at the first one. Opens, edits or ticks the row.
  function rowKey(row, key) {
    if (!row) {
      const first = key === "j" && [...document.querySelectorAll("main tbody > tr")].find(heldBy);
      if (first) heldBy(first).focus();
      return Boolean(first);
    }
    if (["ArrowDown", "ArrowUp", "j", "k"].includes(key)) {
      let next = row;
      do next = key === "ArrowDown" || key === "j" ? next.nextElementSibling : next.previousElementSibling;
      while (next && !heldBy(next));
      if (next) heldBy(next).focus();
      return next !== null;
    }
    const fold = key === "Enter" && document.activeElement === row && row.querySelector("summary");
    if (fold) fold.click();
    const edit = key === "e" && row.querySelector("[data-edit]");
    const box = key === "x" && row.querySelector("input[type=checkbox]");
    if (edit) window.location.assign(edit.dataset.edit);
    else if (box) box.click();
    return Boolean(edit || box || fold);
  }

  let leader = 0;
  document.addEventListener("keydown", (event) => {
    const field = document.querySelector("input[type=search]");
    if (event.key === "Escape" && event.target === field && field.value) {
      field.value = "";
      field.dispatchEvent(new Event("search", { bubbles: true }));
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      const form = document.querySelector("form[data-guard]");
      if (form) { event.preventDefault(); form.requestSubmit(); }
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && event.target.matches("form[data-guard] textarea")) {
      event.preventDefault();
      event.target.form.requestSubmit();
      return;
    }
    if (event.altKey && !event.ctrlKey && !event.metaKey && /^Digit[1-9]$/.test(event.code)) {
      const tab = document.querySelectorAll("nav.q-tabs > a")[Number(event.code.slice(5)) - 1];
      if (tab) { event.preventDefault(); tab.click(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.body.dataset.shortcuts === "off") return;
    if (event.key === "/" && field) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "?") {
      const dialog = byId("shortcuts");
      if (dialog) { event.preventDefault(); dialog.showModal(); }
    } else if (event.key === "g") {
      leader = Date.now();
    } else if (Date.now() - leader < 1500) {
      const link = document.querySelector('a[data-key="' + CSS.escape(event.key) + '"]');
      leader = 0;
      if (link) link.click();
    } else {
      const row = rowOf(event.target);
      const link = document.querySelector('[data-press="' + CSS.escape(event.key) + '"]');
      if (rowKey(row, event.key)) event.preventDefault();
      else if (link) link.click();
    }
  });

  // Passkeys: the scripts of the sign-in say here what a browser answered.

  const PASSKEY_PLACE = "Passkeys need HTTPS and a name, or localhost: they do not work at an address such as this one.";
  document.addEventListener("allauth.error", (event) => {
    const name = (event.detail.exception || {}).name;
    event.preventDefault();
    if (!window.isSecureContext || name === "SecurityError") toast("bad", PASSKEY_PLACE);
    else if (name === "InvalidStateError") toast("warn", "This passkey is there already.");
    else toast("warn", "No passkey was used: it was cancelled, took too long, or there is none for this site.");
  });

  document.addEventListener("DOMContentLoaded", () => {
    const bad = document.querySelector("[aria-invalid=true]");
    if (bad) bad.focus();
  });
})();
