// Sliders and the fields beside them, buttons that copy, and forms that are sent once.
// Everything works without it, too: fields can be typed into, and every form has a button. What only
// a script can do (class "scripted") is shown when this one and htmx are ready.
(() => {
  "use strict";
  const STEPS = 200;
  const two = (number, digits) => Number(number.toPrecision(digits));

  function value(slider) {
    const least = Number(slider.dataset.least), most = Number(slider.dataset.most);
    const share = Number(slider.value) / STEPS;
    if (slider.dataset.scale === "linear") return two(least + share * (most - least), 3);
    const found = least * Math.pow(most / least, share);
    if (slider.dataset.scale === "whole") return Math.max(least, Math.round(found));
    return two(found, slider.dataset.scale === "log1" ? 1 : 2);
  }

  function text(number) {
    if (number >= 1e-4) return String(number);
    return number.toExponential().replace("e+", "e");
  }

  function place(slider, given) {
    const least = Number(slider.dataset.least), most = Number(slider.dataset.most);
    const number = Number(given);
    if (given === "" || !Number.isFinite(number) || number <= 0) return;
    const bounded = Math.min(Math.max(number, least), most);
    const share = slider.dataset.scale === "linear"
      ? (bounded - least) / (most - least)
      : Math.log(bounded / least) / Math.log(most / least);
    slider.value = String(Math.round(share * STEPS));
    told(slider, given);
  }

  function told(slider, words) {
    slider.setAttribute("aria-valuetext", words === "" ? "not given" : words);
  }

  // htmx has registered first, so that it listens by then.
  document.addEventListener("DOMContentLoaded", () => {
    prepare(document);
    document.documentElement.classList.add("ready");
  });

  function field(slider) {
    return document.getElementById(slider.dataset.for);
  }

  function prepare(root) {
    for (const slider of root.querySelectorAll("input[type=range][data-for]")) {
      const given = field(slider).value;
      if (given === "") { slider.value = "0"; told(slider, ""); } else place(slider, given);
    }
  }

  // While capturing: htmx, which listens further down, then sends what the slider says.
  document.addEventListener("input", (event) => {
    const from = event.target;
    if (from.matches("input[type=range][data-for]")) {
      const words = text(value(from));
      field(from).value = words;
      told(from, words);
      return;
    }
    if (from.id) {
      const slider = document.querySelector(`input[type=range][data-for="${CSS.escape(from.id)}"]`);
      if (slider) place(slider, from.value);
    }
  }, true);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // A second click does nothing. The server would charge once in any case.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-once]")) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
    const told = form.querySelector(".sent");
    if (told) told.hidden = false;
  });

  // Back to a page that was sent: it can be sent again, under the same request.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
      const told = form.querySelector(".sent");
      if (told) told.hidden = true;
    }
    prepare(document);
    update(document.getElementById("plan"));
  });

  // Fields that were typed into before this script was here, or that the browser filled in.
  function update(form) {
    if (!form) return;
    const isNew = (one) => one.matches("select")
      ? ![...one.options].every((choice) => choice.selected === choice.defaultSelected)
      : one.value !== one.defaultValue || one.checked !== one.defaultChecked;
    const changed = [...form.elements].find((one) => one.name && isNew(one));
    if (changed) changed.dispatchEvent(new Event("input", { bubbles: true }));
  }
})();
