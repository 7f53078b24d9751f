/* Pages read from the disk may start no worker, which the theme's search is; a hidden frame stands in for it.
   `iframe-worker` in this file's name tells the theme that it need not load another from elsewhere. */
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>search</title>";
      this.begun = new Promise((begun) => {
        this.frame.addEventListener("load", () => {
          const inside = this.frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = new URL(address, location);
          script.addEventListener("load", () => begun(inside));
          inside.document.body.append(script);
        }, { once: true });
      });
      document.body.append(this.frame);
    }

    postMessage(data) {
      this.begun.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
