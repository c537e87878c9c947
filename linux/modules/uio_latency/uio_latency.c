// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers an edge on one pin with a pulse on another, to be timed from
 * outside: once in the interrupt's handler, once more when user space, woken
 * by it, writes to the device. The time between the edge and the first pulse
 * is the interrupt's latency; between the two pulses lie the switch to the
 * task and its way back into the kernel.
 *
 * If the interrupt controller knows both edges only, the handler answers while
 * the stimulus is high.
 *
 * The device tree names the pins (stimulus-gpios, response-gpios); the device
 * is /dev/uioN, whose read() gives the number of interrupts so far.
 */
#include <linux/delay.h>
#include <linux/gpio/consumer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/uio_driver.h>

#define PULSE_US	2

struct uio_latency {
	struct uio_info info;
	struct gpio_desc *stimulus;
	struct gpio_desc *response;
	bool both_edges;
};

static void uio_latency_pulse(struct uio_info *info)
{
	struct uio_latency *latency = info->priv;

	gpiod_set_value(latency->response, 1);
	udelay(PULSE_US);
	gpiod_set_value(latency->response, 0);
}

static irqreturn_t uio_latency_handler(int irq, struct uio_info *info)
{
	struct uio_latency *latency = info->priv;

	/* A stimulus must stay high until the handler sees it. */
	if (latency->both_edges && !gpiod_get_value(latency->stimulus))
		return IRQ_NONE;

	uio_latency_pulse(info);
	return IRQ_HANDLED;
}

/* What user space writes, an s32, is of no matter. */
static int uio_latency_irqcontrol(struct uio_info *info, s32 value)
{
	uio_latency_pulse(info);
	return 0;
}

static int uio_latency_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct uio_latency *latency;
	int irq;

	latency = devm_kzalloc(dev, sizeof(*latency), GFP_KERNEL);
	if (!latency)
		return -ENOMEM;

	latency->stimulus = devm_gpiod_get(dev, "stimulus", GPIOD_IN);
	if (IS_ERR(latency->stimulus))
		return dev_err_probe(dev, PTR_ERR(latency->stimulus),
				     "no stimulus pin\n");
	latency->response = devm_gpiod_get(dev, "response", GPIOD_OUT_LOW);
	if (IS_ERR(latency->response))
		return dev_err_probe(dev, PTR_ERR(latency->response),
				     "no response pin\n");
	irq = gpiod_to_irq(latency->stimulus);
	if (irq < 0)
		return dev_err_probe(dev, irq, "no interrupt\n");
	/* Some controllers interrupt at both edges only (pinctrl-at91.c). */
	latency->both_edges = irq_set_irq_type(irq, IRQ_TYPE_EDGE_RISING);

	latency->info.name = "uio_latency";
	latency->info.version = "1";
	latency->info.irq = irq;
	latency->info.irq_flags = latency->both_edges ?
		IRQF_TRIGGER_RISING | IRQF_TRIGGER_FALLING : IRQF_TRIGGER_RISING;
	latency->info.handler = uio_latency_handler;
	latency->info.irqcontrol = uio_latency_irqcontrol;
	latency->info.priv = latency;

	return devm_uio_register_device(dev, &latency->info);
}

static const struct of_device_id uio_latency_of_match[] = {
	{ .compatible = "warmswitch,uio-latency" },
	{ }
};
MODULE_DEVICE_TABLE(of, uio_latency_of_match);

static struct platform_driver uio_latency_driver = {
	.probe = uio_latency_probe,
	.driver = {
		.name = "uio_latency",
		.of_match_table = uio_latency_of_match,
	},
};
module_platform_driver(uio_latency_driver);

MODULE_DESCRIPTION("Answers an edge on a pin with a pulse, from interrupt and from user space");
MODULE_LICENSE("GPL");
