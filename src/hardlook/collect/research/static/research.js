// A comfort only: pages with live parts renew them while they are in sight. Without it there is a link that does so.
const marker = document.querySelector("[data-every]");

async function renew() {
  if (document.hidden) return;
  let answer;
  try {
    answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
  } catch {
    return;
  }
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    // Never under the reader's hands: what holds the focus or a selection stays.
    const selected = window.getSelection();
    const held = part.contains(document.activeElement) || (!selected.isCollapsed && part.contains(selected.anchorNode));
    if (fresh && !held && fresh.innerHTML !== part.innerHTML) part.innerHTML = fresh.innerHTML;
  }
  if (!page.querySelector("[data-every]")) clearInterval(timer);
}

const again = marker && "reload" in marker.dataset ? () => location.reload() : renew;
const timer = marker ? setInterval(again, Number(marker.dataset.every) * 1000) : 0;
