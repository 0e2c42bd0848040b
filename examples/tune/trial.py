"""Fits a line to points by gradient descent, as a trial of `surefoot tune`."""

import surefoot_trial

rate, momentum = (surefoot_trial.parameters()[name] for name in ("rate", "momentum"))
points = [(i / 20, 3 * i / 20 - 1) for i in range(20)]
slope = offset = slope_speed = offset_speed = 0.0
EPOCHS = 30
for epoch in range(1, EPOCHS + 1):
    errors = [slope * x + offset - y for x, y in points]
    loss = sum(error * error for error in errors) / len(points)
    surefoot_trial.report(epoch=epoch, epochs=EPOCHS, loss=loss, value=loss)
    slope_speed = momentum * slope_speed - rate * sum(e * x for e, (x, _) in zip(errors, points)) / len(points)
    offset_speed = momentum * offset_speed - rate * sum(errors) / len(points)
    slope, offset = slope + slope_speed, offset + offset_speed
